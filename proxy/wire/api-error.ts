/** An error response of the API: HTTP status, `error.type`, `error.message`. */
export interface ApiError {
  readonly status: number;
  readonly type: string;
  readonly message: string;
}

export function invalidRequest(message: string): ApiError {
  return { status: 400, type: 'invalid_request_error', message };
}

/** Which part of a rewrite may have caused a 400; null for errors that a rewrite cannot cause. */
export function classifyApiError(errorText: string): 'thinking' | 'structure' | null {
  if (/too long|too large|credit|quota|usage limit/i.test(errorText)) return null;
  if (/thinking|signature|bound to/i.test(errorText)) return 'thinking';
  return /messages|system|tool_use|tool_result|cache_control|role|text content/i.test(errorText) ? 'structure' : null;
}
