"""What tests share: worlds to run in, tiny models, servers, readers of pages."""
