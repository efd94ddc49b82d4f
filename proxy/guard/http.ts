/**
 * node:http for a process that has to stay small: an `import` of it evaluates each of its exports, one of which loads
 * Node's own fetch (13 MB on Node 22 and 24).
 */
export const http = process.getBuiltinModule('node:http');
