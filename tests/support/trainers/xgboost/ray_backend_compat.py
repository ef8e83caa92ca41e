"""The parts of xgboost_ray that the backend depends on."""

from __future__ import annotations

from xgboost_ray import callback, elastic, main, matrix, session

from trainers.xgboost.ray_backend import compat as compat

READ = {
    # What is replaced.
    main._start_rabit_tracker: "9e3cb3b1c64ffb8f",
    main._stop_rabit_tracker: "81ba8a68bb739faf",
    # What calls it, and how its arguments reach XGBoost.
    main._RabitContextBase: "c61954b03fcbb030",
    main._train: "d83d2b82d79ec5e5",
    main.train: "2fc0e9fad28bf165",
    main.RayXGBoostActor: "e7e49a889e71c891",
    # What `ChannelMatrix`, `Journal` and the callbacks rest on.
    main._get_dmatrix: "b117bcfe0bb650a8",
    main._handle_queue: "2f7c5a3d68ad0698",
    matrix.RayDMatrix: "f16c6863bb18982d",
    callback.DistributedCallbackContainer: "a7049a15a4c0a148",
    session.put_queue: "414aca69119098c3",
    elastic._update_scheduled_actor_states: "a27529ad8c528f63",
}
"""Fingerprints of the source that the backend was written against."""
