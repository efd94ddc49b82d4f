/** Whose fault a 400 to a rewritten request is: null for refusals that a rewriter has no part in. */
export function classifyApiError(errorText: string): 'thinking' | 'structure' | null {
  if (/too long|too large|credit|quota|usage limit/i.test(errorText)) return null;
  if (/thinking|signature|bound to/i.test(errorText)) return 'thinking';
  return /messages|system|tool_use|tool_result|cache_control|role|text content/i.test(errorText) ? 'structure' : null;
}
