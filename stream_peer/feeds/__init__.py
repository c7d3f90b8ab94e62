"""The feed stage: rounds and outcomes in; weights, mixed forecasts, error rates and certificates out."""
