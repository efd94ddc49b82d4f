/** An error answer of the API: HTTP status, `error.type`, `error.message`. */
export interface ApiError {
  readonly status: number;
  readonly type: string;
  readonly message: string;
}

export function invalidRequest(message: string): ApiError {
  return { status: 400, type: 'invalid_request_error', message };
}
