import { afterEach } from 'vitest'
import { takeFacts } from './facts.ts'

afterEach(({ task }) => {
  const facts = takeFacts()
  for (const error of task.result?.errors ?? []) {
    const message = [error.message, ...facts].join('\n')
    error.stack = error.stack?.replace(error.message, () => message) ?? message
    error.message = message
  }
})
