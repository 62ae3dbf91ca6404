"""Record risk by latent classes with a learned scatter of the combinations about them."""
