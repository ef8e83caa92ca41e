"""Parts of `experiments.external_memory`: rows on disk, limited workers, and XGBoost by hand."""
