"""Replies of a language model by vLLM, offline: on GPUs, and on the CPU where vLLM is built for it.

A grammar made of the prompt's schema lets the model write nothing else, in one line. Log-probabilities are those of
the model after that grammar and before temperature and top_p: they compare the tokens that were possible there, and
those of a place where all alternatives are kept add up to 1.

Left out: images, and token budgets for thoughts alone. Needs the extra `vllm`, which is imported on first use.
"""

import json
import math
from collections.abc import Sequence
from typing import Any

from tasks.core.errors import EngineError
from tasks.engines import generator
from tasks.engines.generator import WHAT, Generated, GeneratorConfig, Prompt, Reply, Token
from tasks.engines.shared import model_files, vllm_host
from tasks.engines.shared.chat import Chat


class VllmGenerator:
    """A language model that vLLM runs (see `generator.Generator`)."""

    def __init__(self, config: GeneratorConfig) -> None:
        self._config = config
        self._host = vllm_host.Host()
        self._chat: Chat | None = None
        self._tokenizer: Any = None
        self._description: dict[str, object] | None = None

    def describe(self) -> dict[str, object]:
        """Everything that decides a reply.

        Raises:
            EngineError: The model's files are not there.
        """
        if self._description is None:  # hashing large models takes a while
            self._description = generator.describe(self._config)
        return self._description

    def generate(self, prompts: Sequence[Prompt], samples: int = 1) -> list[Generated]:
        """The replies to each prompt, in order. At temperature 0 samples are the same reply, written once.

        A prompt that leaves less room than its reply may take is `too_long`.

        Raises:
            EngineError: The model can't be loaded or fails to run: nothing is kept.
        """
        if not prompts:
            return []
        ids = list(self._load_chat().encode([(prompt.system, prompt.user) for prompt in prompts]))
        made = [Generated(failure="too_long")] * len(prompts)
        asked = [n for n, prompt in enumerate(prompts) if len(ids[n]) + self._room(prompt) <= self._config.max_tokens]
        if asked:
            outputs = self._run([prompts[n] for n in asked], [ids[n] for n in asked], samples)
            for n, output in zip(asked, outputs, strict=True):
                made[n] = self._generated(output, samples)
        return made

    def close(self) -> None:
        """End vLLM's processes, and with them what they hold of memory; a later call loads the model again."""
        self._host.close()

    def _room(self, prompt: Prompt) -> int:
        return self._config.thinking_tokens if self._config.thinking else prompt.max_tokens

    def _run(self, prompts: Sequence[Prompt], ids: Sequence[list[int]], samples: int) -> list[Any]:
        llm = self._load()
        parameters: dict[tuple[int, int], Any] = {}  # one for all prompts that ask for the same
        for prompt in prompts:
            key = id(prompt.schema), prompt.max_tokens
            if key not in parameters:
                parameters[key] = self._parameters(prompt, samples)
        try:
            found: list[Any] = llm.generate(
                [{"prompt_token_ids": tokens} for tokens in ids],
                [parameters[id(prompt.schema), prompt.max_tokens] for prompt in prompts],
                use_tqdm=False,
            )
        except Exception as error:  # vLLM's errors have no common base
            self.close()
            raise EngineError(
                f"vLLM failed on {len(ids)} prompts ({type(error).__name__}); its own messages say why. If it lacked "
                "memory, lower offline.batch_tokens, offline.max_sequences or offline.gpu_memory_share, or free some."
            ) from error
        return found

    def _parameters(self, prompt: Prompt, samples: int) -> Any:  # noqa: ANN401
        from vllm.sampling_params import SamplingParams, StructuredOutputsParams  # noqa: PLC0415

        c = self._config
        drawing = {"n": samples, "top_p": c.top_p, "seed": c.seed} if c.temperature else {}
        return SamplingParams(
            **drawing,
            temperature=c.temperature,
            max_tokens=self._room(prompt),
            logprobs=generator.TOP,
            flat_logprobs=True,  # many small objects otherwise
            detokenize=False,  # vLLM would decode every alternative of every token anew
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
            # The first alternative is the token that was drawn; it comes again if it is one of the likeliest.
            among = range(kept.start_indices[place] + 1, kept.end_indices[place])
            top = [(chat.text(kept.token_ids[i]), kept.logprobs[i]) for i in among if kept.logprobs[i] > -math.inf]
            tokens.append(Token(added, tuple(top)))
        text = "".join(token.text for token in tokens)
        # Whatever else ends a reply cuts it off.
        return Reply(text, "stop" if written.finish_reason == "stop" else "length", tuple(tokens))

    def _load_chat(self) -> Chat:
        if self._chat is None:
            c = self._config
            name, options = model_files.source(c, WHAT)
            try:
                self._tokenizer = model_files.transformers().AutoTokenizer.from_pretrained(
                    name, trust_remote_code=c.offline.trust_remote_code, **options
                )
            except Exception as error:  # a model's own code may raise anything
                raise model_files.load_error(c, WHAT, error) from error
            self._chat = Chat(self._tokenizer, f"{WHAT} {c.model!r}", c.thinking)
        return self._chat

    def _parser(self) -> Any:  # noqa: ANN401
        """What vLLM's grammar waits for, made anew for each reply: some keep a state."""
        from vllm.reasoning import ReasoningParserManager  # noqa: PLC0415

        name = self._config.offline.reasoning_parser
        try:
            return ReasoningParserManager.get_reasoning_parser(name)(self._tokenizer)
        except Exception as error:  # none of that name, no such markers in the model, or a package that is not there
            raise EngineError(
                f"vLLM's reasoning parser {name!r} can't read {WHAT} {self._config.model!r} "
                f"({vllm_host.reason(error)}). Check offline.reasoning_parser."
            ) from error

    def _load(self) -> Any:  # noqa: ANN401
        if self._host.llm is None:
            c = self._config
            settings = _settings(c)
            if c.thinking:
                self._parser()  # says now what it would say after the model is loaded
            try:
                self._host.start(c, WHAT, settings, {"VLLM_BATCH_INVARIANT": "1"} if c.offline.batch_invariant else {})
            except EngineError:
                raise
            except Exception as error:  # vLLM's errors have no common base
                raise _load_error(c, error) from error
        return self._host.llm


def thought(parser: Any, prompt: Sequence[int], ids: Sequence[int]) -> int:  # noqa: ANN401
    """Tokens before the reply: a thought and what ends it. All of them where it does not end.

    It is found as vLLM finds where its grammar begins, from the first token on: a later marker is part of the reply.

    Args:
        parser: A reasoning parser of vLLM's.
        prompt: Ids of the prompt, whose template may have begun the thought, or ended it.
        ids: What the model wrote.
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


def _settings(config: GeneratorConfig) -> dict[str, Any]:
    own = config.offline
    if own.batch_invariant and vllm_host.on_cpu():
        raise EngineError("offline.batch_invariant is set, which vLLM has for GPUs alone. Remove it.")
    chosen: dict[str, Any] = {
        "quantization": own.quantization,
        "max_num_seqs": own.max_sequences,
        "max_num_batched_tokens": own.batch_tokens,
    }
    if config.temperature and vllm_host.on_cpu():
        # vLLM 0.32 fails there on a prompt that is read in parts and has a seed.
        whole = max(own.batch_tokens or 0, config.max_tokens)
        chosen |= {"enable_chunked_prefill": False, "max_num_batched_tokens": whole}
    return {
        **vllm_host.settings(
            dtype=config.dtype,
            max_tokens=config.max_tokens,
            tensor_parallel=own.tensor_parallel,
            gpu_memory_share=own.gpu_memory_share,
            trust_remote_code=own.trust_remote_code,
        ),
        "runner": "generate",
        "seed": config.seed,
        "enable_prefix_caching": own.prefix_caching,
        "max_logprobs": generator.TOP,
        "logprobs_mode": "raw_logprobs",
        "structured_outputs_config": {
            "backend": "xgrammar",
            "disable_any_whitespace": True,
            "reasoning_parser": own.reasoning_parser if config.thinking else "",
        },
        **{name: value for name, value in chosen.items() if value is not None},
    }


def _load_error(config: GeneratorConfig, error: Exception) -> EngineError:
    model = f"{WHAT} {config.model!r}"
    if "max_model_len" in str(error):
        return EngineError(f"{model} reads fewer tokens than max_tokens, which is {config.max_tokens}. Lower it.")
    if "architectures" in str(error):
        return EngineError(
            f"vLLM does not serve {model} ({vllm_host.reason(error)}). Use another model or a newer vLLM."
        )
    return EngineError(
        f"vLLM can't load {model} ({vllm_host.reason(error)}). Its own messages say more; if it lacked memory, "
        "lower max_tokens, fit offline.gpu_memory_share to what is free, or raise offline.tensor_parallel."
    )
