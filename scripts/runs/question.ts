import { formatLocalTime } from '../../core/runs/view/format.ts'
import { connector } from '../../core/runs/view/shell.ts'
import type { WriteProgress } from '../../workflows/write-run/progress.ts'

const questions: Readonly<Record<NonNullable<WriteProgress['waitingFor']>['question'], string>> = {
  approval: 'Nothing was sent yet',
  canary: 'The first ones were sent, and the others wait',
  breaker: 'Too many failed, and so did every trial after that',
}

/** What a run waits for, and the commands that answer. */
export function toQuestion({
  run,
  question,
  count,
  until,
}: NonNullable<WriteProgress['waitingFor']> & { run: string }): string {
  const confirmed = count === undefined ? '' : ` --count ${count}`
  return `${questions[question]}. The run waits for approval until ${formatLocalTime(until, 'minutes')}. To approve: ${connector`run approve ${run}`}${confirmed} --why "..."; to end it: ${connector`run stop ${run}`}`
}
