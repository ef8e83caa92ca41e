"""Rows and a small model of XGBoost's, for tests of predictions in processes of their own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xgboost

from hpo.endpoints.scoring import BoosterScorer

FRAME = pd.DataFrame(np.random.default_rng(4).normal(size=(900, 3)).astype(np.float32), columns=["a", "b", "c"])
MODEL = xgboost.train({"nthread": 1, "max_depth": 3}, xgboost.DMatrix(FRAME, FRAME["a"] - FRAME["b"]), 5)
SCORER = BoosterScorer(raw=bytes(MODEL.save_raw("ubj")))
