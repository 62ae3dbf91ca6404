"""Posteriors of a few parameters: by quadrature, or by NUTS for who asks."""
