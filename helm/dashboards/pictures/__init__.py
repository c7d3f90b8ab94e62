"""Pictures of dashboards, drawn with matplotlib from what their queries are answered."""
