"""What `experiments.why_it_broke` is made of: causes, changes, trainings, a diagnosis and its page."""
