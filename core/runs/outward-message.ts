/**
 * The error message that may leave the data folder: into Temporal's history, a notification or a log. An
 * error whose message quotes a cell or the service also carries the message without the quote, as
 * `withoutValues`.
 */
export function outwardMessage(error: Error): string {
  return 'withoutValues' in error && typeof error.withoutValues === 'string'
    ? error.withoutValues
    : error.message
}
