"""Names on their way to `mmcnb._config`; gone once no caller is left."""

from mmcnb._config import LIBRARIES, format_bytes, parse_bytes, resolve_memory_limit

__all__ = ["LIBRARIES", "format_bytes", "parse_bytes", "resolve_memory_limit"]
