"""What runs beside the worker: replay, explain, transfer, report and demo."""
