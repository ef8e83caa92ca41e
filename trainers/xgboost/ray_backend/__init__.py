"""Training through xgboost_ray, the second backend of `XGBoostTrainer`."""
