"""Why a weight moved, and what happened to a question."""
