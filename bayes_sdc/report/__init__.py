"""Reports: templates and plots; they read results and compute nothing."""
