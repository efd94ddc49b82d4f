export * from './client-env.ts';
export * from './control.ts';
export * from './daemon.ts';
export * from './user-proxy.ts';
