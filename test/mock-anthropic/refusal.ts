/** An error answer of the API: HTTP status and fields of `error`. */
export interface Refusal {
  readonly status: number;
  readonly type: string;
  readonly message: string;
  readonly details?: Readonly<Record<string, string>>;
}

export function invalid(message: string): Refusal {
  return { status: 400, type: 'invalid_request_error', message };
}

export const TOO_LARGE: Refusal = {
  status: 413,
  type: 'request_too_large',
  message: 'Request exceeds the maximum size',
};
