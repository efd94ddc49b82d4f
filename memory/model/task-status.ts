export const TASK_STATUSES = ['active', 'blocked', 'done'] as const;
export const TASK_PRIORITIES = ['low', 'medium', 'high'] as const;
export const TASK_MODES = ['notify', 'question', 'review'] as const;
