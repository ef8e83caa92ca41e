"""Programs of eleven frameworks, as their own documentation writes them, that `ScriptTrainer` tunes as they stand."""
