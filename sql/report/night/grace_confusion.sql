-- Grain: one right source and one source that was cited instead; the most frequent pairs of each app and generator.
-- Inputs: nightly_grace_confusion, nightly_grace_sources. Parameters: $recipe, $night, $each.
SELECT c.app, c.generator, c.gold, c.cited, c.n, s.support
FROM nightly_grace_confusion AS c
INNER JOIN nightly_grace_sources AS s
    ON s.recipe = c.recipe AND s.date = c.date AND s.app = c.app AND s.generator = c.generator AND s.source = c.gold
WHERE c.recipe = $recipe AND c.date = $night AND c.cited <> c.gold
QUALIFY row_number() OVER (PARTITION BY c.app, c.generator ORDER BY c.n DESC, c.gold, c.cited) <= $each
ORDER BY c.app, c.generator, c.n DESC, c.gold, c.cited
