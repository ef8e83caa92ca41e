"""Parts of `experiments.why_it_broke`: causes, trainings, a diagnosis and its page."""
