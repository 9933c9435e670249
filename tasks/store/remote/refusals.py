"""Errors of object storage, with their remedies."""

import re

from obstore.exceptions import BaseError

from tasks.core.errors import LeadlineError, StorageError, UsageError
from tasks.core.paths import ObjectUrl

# Codes of S3 and of Azure, by what they mean for us; an S3-compatible store may give only a status.
CODES = {
    "bucket": {"NoSuchBucket", "ContainerNotFound", "ContainerBeingDeleted", "ContainerDisabled"},
    "clock": {"RequestTimeTooSkewed", "Request date header too old"},  # the latter explains AuthenticationFailed
    "keys": {
        "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired",
        "AuthenticationFailed", "InvalidAuthenticationInfo", "NoAuthenticationInformation",
        "KeyBasedAuthenticationNotPermitted",
    },
    "identity": {"token request", "token response", "token file"},
    "region": {"PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed"},
    "rights": {
        "AccessDenied", "AllAccessDisabled", "AccountProblem", "AuthorizationPermissionMismatch",
        "InsufficientAccountPermissions", "AccountIsDisabled",
    },
    "network": {"AuthorizationFailure", "AuthorizationSourceIPMismatch", "PublicAccessNotPermitted"},
    "busy": {
        "SlowDown", "ServiceUnavailable", "TooManyRequests", "InternalError", "RequestTimeout",
        "ServerBusy", "OperationTimedOut",
    },
}  # fmt: skip
STATUSES = {"301": "region", "307": "region", "401": "rights", "403": "rights", "429": "busy", "5": "busy"}
_CODE = re.compile(r"<Code>(\w+)</Code>")
_WORDS = re.compile(r"Request date header too old|token (?:request|response|file)")
_STATUS = re.compile(r"(?:status code|\(code): (\d{3})")  # the second in a deletion, of several objects in general
S3_RIGHTS = {"list": "s3:ListBucket", "read": "s3:GetObject", "write": "s3:PutObject", "delete": "s3:DeleteObject"}
# By the scheme of a place: what it calls a bucket, and the remedies that differ.
WORDS = {
    "s3": {
        "bucket": "bucket",
        "keys": "Correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE, or log in again.",
        "rights": "Grant the access key {right} here",
        "address": "AWS_ENDPOINT_URL",
    },
    "az": {
        "bucket": "container",
        "keys": "Correct AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS_TOKEN or AZURE_STORAGE_CONNECTION_STRING, or "
        "unset them where an identity is attached.",
        "rights": "Grant the identity the role Storage Blob Data Contributor here",
        "address": "AZURE_STORAGE_ACCOUNT_NAME",
    },
}


def explained(error: Exception, place: ObjectUrl, key: str, verb: str) -> LeadlineError | None:
    """An error of obstore in one message, with a remedy; None for a missing file and for other errors.

    Args:
        verb: What was asked: list, read, write or delete.
    """
    text = str(error)
    code = next(iter(_CODE.findall(text)), "")
    if isinstance(error, FileNotFoundError) and code not in CODES["bucket"]:
        return None
    if not isinstance(error, (BaseError, FileNotFoundError)):
        return None
    status = next(iter(_STATUS.findall(text)), "")
    by_status = STATUSES.get(status) or STATUSES.get(status[:1], "refused" if status else "lost")
    kinds = (kind for kind, codes in CODES.items() if codes & {code, *_WORDS.findall(text)})
    kind = by_status if by_status == "busy" else next(kinds, by_status)
    words = WORDS.get(place.url.partition(":")[0], WORDS["s3"])
    bucket = words["bucket"]
    what, problem, remedy = {
        "bucket": (UsageError, f"there is no {bucket} {place.bucket!r}", "Create it, or correct `lake` in the config."),
        "clock": (LeadlineError, "the store refuses this machine's clock", "Set it (`timedatectl set-ntp true`)"),
        "keys": (UsageError, f"the store does not accept the credentials ({code})", words["keys"]),
        "identity": (
            UsageError,
            "needs credentials; none were found, and no identity gave a token",
            "Set AZURE_STORAGE_ACCOUNT_KEY, or AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, or run where "
            "an identity is attached.",
        ),
        "region": (UsageError, f"the {bucket} is in another region", "Set AWS_REGION to its region."),
        "rights": (LeadlineError, "access denied", words["rights"].format(right=S3_RIGHTS[verb])),
        "network": (
            LeadlineError,
            f"access denied ({code})",
            "Let the firewall of the storage account admit this machine, or correct the account key",
        ),
        "busy": (StorageError, f"the store is too busy ({code or status}), also after several tries", "Wait"),
        "lost": (StorageError, "the store can't be reached", f"Check the network and {words['address']}"),
        "refused": (LeadlineError, f"the store refuses to {verb} it ({code or status})", "Check `lake` in the config"),
    }[kind]
    again = "" if remedy.endswith(".") else ", then run again; stored results are kept."
    return what(f"{place.url}/{key}: {problem}. {remedy}{again}")
