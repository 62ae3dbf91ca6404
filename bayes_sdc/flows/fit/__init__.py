"""Fitting: chains, batches of groups, checkpoints, clusters, NUTS, and the posterior as a tree."""
