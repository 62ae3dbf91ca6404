"""Posteriors of a few parameters: by quadrature, or on request by NUTS."""
