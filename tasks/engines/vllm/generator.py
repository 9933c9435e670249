"""The engine `vllm_offline` for language models: on GPUs, and on the CPU with a vLLM built for it.

A grammar made from the prompt's schema restricts the model's output, which is one line of JSON. Log-probabilities are
taken after the grammar and before temperature and top_p: they compare only tokens that the grammar allows, and the
probabilities of all alternatives at one position sum to 1.

Left out: images, and separate token budgets for thoughts. Needs the extra `vllm`, which is imported on first use.
"""

import json
import math
from collections.abc import Sequence
from typing import Any

from tasks.core.errors import EngineError
from tasks.engines import _models
from tasks.engines._chat import Chat
from tasks.engines.generator import TOP, WHAT, Generated, Generator, GeneratorConfig, Prompt, Reply, Token
from tasks.engines.vllm import _host

MEMORY = (
    "lower max_tokens, offline.batch_tokens or offline.max_sequences, fit offline.gpu_memory_share to what is free, or "
    "raise offline.tensor_parallel"
)


class VllmGenerator(Generator):
    """A language model that vLLM runs."""

    def __init__(self, config: GeneratorConfig) -> None:
        super().__init__(config)
        self._host = _host.Host(config, WHAT, MEMORY, "another model or a newer vLLM")
        self._chat: Chat | None = None
        self._tokenizer: Any = None

    def generate(self, prompts: Sequence[Prompt], samples: int = 1) -> list[Generated]:
        """See `Generator`."""
        if not prompts:
            return []
        ids = list(self._load_chat().encode([(prompt.system, prompt.user) for prompt in prompts]))
        made = [Generated(failure="too_long")] * len(prompts)
        c = self._config
        fitting = [n for n, prompt in enumerate(prompts) if len(ids[n]) + c.reply_tokens(prompt) <= c.max_tokens]
        if fitting:
            outputs = self._run([prompts[n] for n in fitting], [ids[n] for n in fitting], samples)
            for n, output in zip(fitting, outputs, strict=True):
                made[n] = self._generated(output, samples)
        return made

    def close(self) -> None:
        """End vLLM's processes, which frees their memory; a later call loads the model again."""
        self._host.close()

    def _run(self, prompts: Sequence[Prompt], ids: Sequence[list[int]], samples: int) -> list[Any]:
        if self._host.llm is None:
            self._load()
        parameters: dict[tuple[int, int, bool], Any] = {}  # one object for all prompts that differ only in their text
        each = []
        for prompt in prompts:
            key = id(prompt.schema), prompt.max_tokens, prompt.alternatives
            if key not in parameters:
                parameters[key] = self._parameters(prompt, samples)
            each.append(parameters[key])
        inputs = [{"prompt_token_ids": tokens} for tokens in ids]
        outputs: list[Any] = self._host.run(
            lambda llm: llm.generate(inputs, each, use_tqdm=False), f"{len(ids)} prompts"
        )
        return outputs

    def _parameters(self, prompt: Prompt, samples: int) -> Any:  # noqa: ANN401
        from vllm.sampling_params import SamplingParams, StructuredOutputsParams  # noqa: PLC0415

        c = self._config
        drawing = {"n": samples, "top_p": c.top_p, "seed": c.seed} if c.temperature else {}
        return SamplingParams(
            **drawing,
            temperature=c.temperature,
            max_tokens=c.reply_tokens(prompt),
            logprobs=TOP if prompt.alternatives else None,
            flat_logprobs=True,  # avoids many small objects
            detokenize=False,  # vLLM would decode every alternative of every token again
            structured_outputs=StructuredOutputsParams(json=json.dumps(prompt.schema)),
        )

    def _generated(self, output: Any, samples: int) -> Generated:  # noqa: ANN401
        replies = [self._reply(output.prompt_token_ids, written) for written in output.outputs]
        return Generated(
            replies=tuple(replies if len(replies) == samples else replies * samples),
            tokens_in=len(output.prompt_token_ids),
            tokens_cached=output.num_cached_tokens or 0,
            tokens_out=sum(len(written.token_ids) for written in output.outputs),
        )

    def _reply(self, prompt: Sequence[int], written: Any) -> Reply:  # noqa: ANN401
        chat, ids = self._load_chat(), list(written.token_ids)
        start, end = 0, len(ids)
        if self._config.thinking:
            start = thought(self._parser(), prompt, ids)
        if written.finish_reason == "stop" and ids[-1] in chat.special:
            end -= 1
        kept, tokens = written.logprobs, []
        for place, added in enumerate(chat.decode(ids[start:end]), start):
            if kept is None:
                tokens.append(Token(added, ()))
                continue
            # The first alternative is the token that was drawn. It appears again if it is one of the most likely
            # tokens.
            among = range(kept.start_indices[place] + 1, kept.end_indices[place])
            top = [(chat.text(kept.token_ids[i]), kept.logprobs[i]) for i in among if kept.logprobs[i] > -math.inf]
            tokens.append(Token(added, tuple(top)))
        text = "".join(token.text for token in tokens)
        # Any other end truncates the reply.
        return Reply(text, "stop" if written.finish_reason == "stop" else "length", tuple(tokens))

    def _load_chat(self) -> Chat:
        if self._chat is None:
            c = self._config
            name, options = _models.source(c, WHAT)
            try:
                self._tokenizer = _models.transformers().AutoTokenizer.from_pretrained(
                    name, trust_remote_code=c.offline.trust_remote_code, **options
                )
            except Exception as error:  # a model's own code may raise anything
                raise _models.load_error(c, WHAT, error) from error
            self._chat = Chat(self._tokenizer, f"{WHAT} {c.model!r}", c.thinking)
        return self._chat

    def _parser(self) -> Any:  # noqa: ANN401
        """The parser that vLLM's grammar waits for. Some parsers have state, so each reply gets a new one."""
        from vllm.reasoning import ReasoningParserManager  # noqa: PLC0415

        name = self._config.offline.reasoning_parser
        try:
            return ReasoningParserManager.get_reasoning_parser(name)(self._tokenizer)
        except Exception as error:  # unknown name, a model without such markers, or a missing package
            raise EngineError(
                f"vLLM's reasoning parser {name!r} can't read {WHAT} {self._config.model!r} ({_host.reason(error)}). "
                "Check offline.reasoning_parser."
            ) from error

    def _load(self) -> None:
        c, own = self._config, self._config.offline
        cpu = _host.on_cpu()
        if own.batch_invariant and cpu:
            raise EngineError("offline.batch_invariant is set, which vLLM supports only on GPUs. Remove it.")
        if c.thinking:
            self._parser()  # fails now if the parser is unusable, not after loading the model
        chosen: dict[str, Any] = {
            "quantization": own.quantization,
            "max_num_seqs": own.max_sequences,
            "max_num_batched_tokens": own.batch_tokens,
        }
        if c.temperature and cpu:
            # On CPUs, vLLM 0.32 fails on a prompt with a seed that is read in parts.
            chosen |= {"enable_chunked_prefill": False}
            chosen |= {"max_num_batched_tokens": max(own.batch_tokens or 0, c.max_tokens)}
        self._host.load(
            {"VLLM_BATCH_INVARIANT": "1"} if own.batch_invariant else {},
            runner="generate",
            seed=c.seed,
            enable_prefix_caching=own.prefix_caching,
            max_logprobs=TOP,
            logprobs_mode="raw_logprobs",
            structured_outputs_config={
                "backend": "xgrammar",
                "disable_any_whitespace": True,
                "reasoning_parser": own.reasoning_parser if c.thinking else "",
            },
            **{name: value for name, value in chosen.items() if value is not None},
        )


def thought(parser: Any, prompt: Sequence[int], ids: Sequence[int]) -> int:  # noqa: ANN401
    """Number of tokens before the reply: a thought and its end mark. A thought without an end takes all tokens.

    It is found as vLLM finds the start of its grammar, from the first token on: later markers are part of the reply.

    Args:
        parser: One of vLLM's reasoning parsers.
        prompt: Ids of the prompt, whose template may have begun or ended the thought.
        ids: Ids that the model wrote.
    """
    if parser.is_reasoning_end(list(prompt)):
        return 0
    if getattr(parser, "reasoning_end_token_ids", None):
        end = parser.find_reasoning_end(ids)
        return min(int(end.offset) + (not end.implicit), len(ids))
    read = list(prompt)
    for n, token in enumerate(ids, 1):
        read.append(token)
        if parser.is_reasoning_end_streaming(read, [token]):
            return n
    return len(ids)
