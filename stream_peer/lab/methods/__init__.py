"""Methods that only a replay computes: other reference answers, error rates, learners and mixers than are served."""
