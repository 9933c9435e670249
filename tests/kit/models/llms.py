"""A tiny chat model with random weights and a real tokenizer, which vLLM serves on the CPU."""

from collections.abc import Sequence
from pathlib import Path

import torch
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

TEXTS = [
    "The customer canceled the order on March 14, 2024, because of pricing. Is the claim supported by the passages?",
    "Cancellations spiked in the first quarter; apples lower cholesterol. Answer with a JSON object.",
    '{"label":"supported","passages":[1,2]} {"label":"unsupported","passages":[]} {"explanation":"none"}',
    '{"label":"partially_supported","passages":[3]} {"label":"contradicted","passages":[1]} system user assistant',
]
END, START, STOP = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
THINK, THOUGHT = "<think>", "</think>"  # added, but not special, as in the models that have them
POSITIONS = 2048
VOCABULARY = 500
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)
PLAIN = TEMPLATE.replace("{% if enable_thinking is defined and enable_thinking is false %}", "{% if false %}")


def build(
    folder: Path,
    *,
    thinking: bool = False,
    texts: Sequence[str] = TEXTS,
    vocabulary: int = VOCABULARY,
    spread: float = 2,
) -> Path:
    """Write a chat model of 2 layers, the same each time, and return its folder. It reads 2,048 tokens.

    Args:
        texts: What its tokens are learned from, at most so many as `vocabulary`.
        spread: How far apart its weights are; from small ones it learns better.
        thinking: Its markers of thoughts are in the vocabulary, and its template closes an empty thought where
            `enable_thinking` is false. It is a Qwen3, which vLLM knows how to read thoughts of; else a Qwen2.
    """
    tokenizer = _tokenizer(thinking, texts, vocabulary)
    tokenizer.save_pretrained(folder)
    transformers.utils.logging.disable_progress_bar()
    ends = {"bos_token_id": None, "eos_token_id": tokenizer.convert_tokens_to_ids(STOP)}
    shared = {
        "vocab_size": len(tokenizer), "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
        "num_key_value_heads": 2, "intermediate_size": 128, "max_position_embeddings": POSITIONS,
        "tie_word_embeddings": False, "pad_token_id": tokenizer.pad_token_id, **ends,
    }  # fmt: skip
    config = transformers.Qwen3Config(**shared, head_dim=32) if thinking else transformers.Qwen2Config(**shared)
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for weights in model.parameters():  # the usual small ones would make all tokens about as likely
            if weights.dim() > 1:
                weights.normal_(std=spread * weights.shape[1] ** -0.5)
        if thinking:  # it would hardly ever end a thought
            model.lm_head.weight[tokenizer.convert_tokens_to_ids(THOUGHT)] *= 2
    model.save_pretrained(folder)
    transformers.GenerationConfig(**ends, pad_token_id=tokenizer.pad_token_id).save_pretrained(folder)
    return folder


def _tokenizer(thinking: bool, texts: Sequence[str], vocabulary: int) -> transformers.PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[END, START, STOP],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    if thinking:
        tokenizer.add_tokens([AddedToken(marker, normalized=False) for marker in (THINK, THOUGHT)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=STOP, pad_token=END, extra_special_tokens=[START],
        chat_template=TEMPLATE if thinking else PLAIN, model_max_length=POSITIONS, clean_up_tokenization_spaces=False,
    )  # fmt: skip
