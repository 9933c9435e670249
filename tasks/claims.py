"""Task shells: answers into claims, claims and chunks into pairs."""

from tasks.shell import shell
from tasks.stages import claims, pairs

extract_claims = shell("claims", claims.extract_claims)
plan_pairs = shell("pairs", pairs.plan_pairs)
