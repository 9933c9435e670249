"""Pages of nights and traces, and what other pages share with them: texts, charts, templates."""
