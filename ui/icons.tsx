import type { View } from './route.ts';

const PATHS: Record<View | 'undo' | 'close', string> = {
  now: 'M3 12h4l3-8 4 16 3-8h4',
  savings: 'M4 20V10m5 10V4m5 16v-7m5 7V8',
  session: 'M4 5h16v11H9l-5 4z',
  memory: 'M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zm5 12 4 4',
  graph:
    'M6 18a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM18 8a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM17 20a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM7.6 14.8l8.8-7.4M8 16.3l7 1.4',
  library: 'M5 4h5v16H5zM10 4h4v16h-4zM15.5 5l3.6-1 3 15-3.6 1z',
  health: 'M12 20S4 15 4 9.5A4.2 4.2 0 0 1 12 7a4.2 4.2 0 0 1 8 2.5C20 15 12 20 12 20z',
  undo: 'M8 5 4 9l4 4M4 9h10a5 5 0 0 1 0 10h-3',
  close: 'M6 6l12 12M18 6 6 18',
};

export function Icon({ name }: { name: keyof typeof PATHS }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
