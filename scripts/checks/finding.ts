import { toFailure } from '../terminal/failures.ts'

/** The result of one check. */
export interface Finding {
  check: string
  /** `notRunning`: nothing is wrong, but no server runs; commands with `--local` work. */
  status: 'ok' | 'notRunning' | 'wrong'
  message: string
}

export const fine = (check: string, message: string): Finding => ({ check, status: 'ok', message })
export const wrong = (check: string, message: string): Finding => ({ check, status: 'wrong', message })
export const notRunning = (check: string, message: string): Finding => ({
  check,
  status: 'notRunning',
  message,
})

/** Runs a check; one that throws becomes a finding with the error's own message. */
export async function runCheck(check: string, run: () => Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await run()
  } catch (error) {
    const { message, hint } = toFailure(error)
    const sentences = [message, hint].filter((part) => part !== null).map(toSentence)
    return [wrong(check, sentences.join(' '))]
  }
}

/** Turns an error message into a sentence: after a colon, messages begin in lower case and have no full stop. */
function toSentence(text: string): string {
  const ended = /[.!?]$/.test(text) ? text : `${text}.`
  return ended.replace(/^[a-z]/, (letter) => letter.toUpperCase())
}
