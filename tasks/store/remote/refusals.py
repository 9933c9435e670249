"""Errors of object storage, with their remedies."""

import re

from obstore.exceptions import BaseError

from tasks.core.errors import LeadlineError, StorageError, UsageError
from tasks.core.paths import ObjectUrl

RIGHTS = {"list": "s3:ListBucket", "read": "s3:GetObject", "write": "s3:PutObject", "delete": "s3:DeleteObject"}
# S3's codes, by what they mean for us; an S3-compatible store may give only a status.
CODES = {
    "bucket": {"NoSuchBucket"},
    "clock": {"RequestTimeTooSkewed"},
    "keys": {"InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired"},
    "region": {"PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed"},
    "rights": {"AccessDenied", "AllAccessDisabled", "AccountProblem"},
    "busy": {"SlowDown", "ServiceUnavailable", "TooManyRequests", "InternalError", "RequestTimeout"},
}
STATUSES = {"301": "region", "307": "region", "401": "rights", "403": "rights", "429": "busy", "5": "busy"}


def explained(error: Exception, place: ObjectUrl, key: str, verb: str) -> LeadlineError | None:
    """An error of obstore in one message, with a remedy; None for a missing file and for other errors.

    Args:
        verb: What was asked: list, read, write or delete.
    """
    text = str(error)
    code = next(iter(re.findall(r"<Code>(\w+)</Code>", text)), "")
    if isinstance(error, FileNotFoundError) and code != "NoSuchBucket":
        return None
    if not isinstance(error, (BaseError, FileNotFoundError)):
        return None
    status = next(iter(re.findall(r"status code: (\d{3})", text)), "")
    by_status = STATUSES.get(status) or STATUSES.get(status[:1], "refused" if status else "lost")
    kind = next((kind for kind, codes in CODES.items() if code in codes), by_status)
    what, problem, remedy = {
        "bucket": (UsageError, f"there is no bucket {place.bucket!r}", "Create it, or correct `lake` in the config."),
        "clock": (LeadlineError, "the store refuses this machine's clock", "Set it (`timedatectl set-ntp true`)"),
        "keys": (
            UsageError,
            f"the store does not accept the credentials ({code})",
            "Correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE, or log in again.",
        ),
        "region": (UsageError, "the bucket is in another region", "Set AWS_REGION to its region."),
        "rights": (LeadlineError, "access denied", f"Grant the access key {RIGHTS[verb]} here"),
        "busy": (StorageError, f"the store is too busy ({code or status}), also after several tries", "Wait"),
        "lost": (StorageError, "the store can't be reached", "Check the network and AWS_ENDPOINT_URL"),
        "refused": (LeadlineError, f"the store refuses to {verb} it ({code or status})", "Check `lake` in the config"),
    }[kind]
    again = "" if remedy.endswith(".") else ", then run again; stored results are kept."
    return what(f"{place.url}/{key}: {problem}. {remedy}{again}")
