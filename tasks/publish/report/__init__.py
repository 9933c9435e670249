"""The static report: pages of nights and traces, and the text formats, charts and templates that all pages share."""
