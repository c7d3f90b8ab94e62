"""The question stage: histories of forecasts in, rounds and outcomes out."""
