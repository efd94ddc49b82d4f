export {
  clientEnvironment,
  isOurProxy,
  noProxyCovers,
  PROXY_NAMES,
  SHELLS,
  type Shell,
  shellLines,
  shellOf,
  withoutOurs,
} from './client-env.ts';
export * from './control.ts';
export { type DaemonSetup, type Started, socketTooLong, startDaemon, stopDaemon } from './daemon.ts';
export { type Context, prepareAccess, prepareDaemon } from './prepare.ts';
export * from './user-proxy.ts';
export { otherBuild } from './version-skew.ts';
export { watchGuard } from './watch-guard.ts';
