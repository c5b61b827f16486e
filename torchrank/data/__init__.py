"""Readers, datasets and seeded synthetic data; names load when first used."""

from torchrank._lazy import lazy_names

# one name a line, sorted
_NAMES: dict[str, str] = {
    "AttributeTable": "torchrank.data.attributes",
    "Blocks": "torchrank.data.blocks",
    "Catalogue": "torchrank.data.catalogue",
    "InteractionLog": "torchrank.data.log",
    "LabelledSequence": "torchrank.data.sequences",
    "ListBatchSampler": "torchrank.data.loading",
    "ListLoader": "torchrank.data.loading",
    "PairLists": "torchrank.data.pairs",
    "PreparedLog": "torchrank.data.prepared",
    "QueryDataset": "torchrank.data.queries",
    "QueryList": "torchrank.data.queries",
    "RowLoader": "torchrank.data.row_loading",
    "SequenceDataset": "torchrank.data.sequences",
    "SequenceLoader": "torchrank.data.sequence_loading",
    "SyntheticObjects": "torchrank.data.synthetic_objects",
    "SyntheticQueries": "torchrank.data.synthetic_queries",
    "SyntheticSequences": "torchrank.data.synthetic_sequences",
    "block_statistics": "torchrank.data.statistics",
    "build_blocks": "torchrank.data.blocks",
    "collate_lists": "torchrank.data.loading",
    "collate_sequences": "torchrank.data.sequence_loading",
    "collect_scores": "torchrank.data.loading",
    "concat_queries": "torchrank.data.queries",
    "countries": "torchrank.data.attributes",
    "log_statistics": "torchrank.data.statistics",
    "make_interactions": "torchrank.data.synthetic_log",
    "make_objects": "torchrank.data.synthetic_objects",
    "make_queries": "torchrank.data.synthetic_queries",
    "make_sequences": "torchrank.data.synthetic_sequences",
    "normalize_queries": "torchrank.data.normalization",
    "prepare_log": "torchrank.data.prepare",
    "read_letor": "torchrank.data.letor",
    "read_log": "torchrank.data.reading",
    "read_movielens": "torchrank.data.movielens",
    "read_sequences": "torchrank.data.sequence_files",
    "read_table": "torchrank.data.attributes",
    "write_run": "torchrank.data.trec",
}
__all__ = sorted(_NAMES)
__getattr__, __dir__ = lazy_names(__name__, _NAMES)
