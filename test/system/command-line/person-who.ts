import type { Terminal } from '../../../scripts/terminal/terminal.ts'

/** A person at a terminal who answers each question as told, and what was shown. */
export function personWho(answers: string[]) {
  const questions: string[] = []
  const notes: string[] = []
  const progress = { update: () => undefined, end: () => undefined }
  const terminal: Terminal = {
    isInteractive: true,
    identity: () => undefined,
    note: (line) => notes.push(line),
    progress: () => progress,
    task: () => progress,
    ask: async (question) => {
      questions.push(question)
      return answers.shift() ?? ''
    },
    result: () => undefined,
    failure: () => 1,
    close: () => undefined,
  }
  return { terminal, questions, notes }
}
