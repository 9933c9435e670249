"""Configuration: YAML files into frozen, checked models; a mistake names file, key, value and remedy."""

from tasks.core.config.base import Language, Pattern, Settings, Share, did_you_mean, load_yaml, scale, validate
from tasks.core.config.load import Chosen, load_nightly, load_recipe, recipes_of
from tasks.core.config.names import given_file, resolved_in
from tasks.core.config.nightly import Alerts, DuckLake, Gates, Limits, Nightly, Promotion, Report, Retention, Sample
from tasks.core.config.recipe import Pairing, Recipe
from tasks.core.config.write_back import WriteBack

__all__ = [
    "Alerts", "Chosen", "DuckLake", "Gates", "Language", "Limits", "Nightly", "Pairing", "Pattern", "Promotion",
    "Recipe", "Report", "Retention", "Sample", "Settings", "Share", "WriteBack", "did_you_mean", "given_file",
    "load_nightly", "load_recipe", "load_yaml", "recipes_of", "resolved_in", "scale", "validate",
]  # fmt: skip
