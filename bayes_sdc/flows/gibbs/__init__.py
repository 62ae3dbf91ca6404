"""The Gibbs samplers: the paper's reference steps, and the engine with Newton proposals."""
