import { findExposed, refuseReadableSecrets } from '../../worker/settings/checks.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { fine, type Finding } from './finding.ts'

/**
 * Checks that files with secrets are readable by this user only, or by no more users than is allowed.
 *
 * @throws {ReadableSecretsError} as the worker does when it refuses to start
 */
export function checkSecrets(settings: Settings): Finding[] {
  refuseReadableSecrets(settings)
  const { secretFiles } = settings
  if (secretFiles.length === 0) return []
  const readable = findExposed({ paths: secretFiles, allowed: 'false', bits: 0o444 })
  const sentences = [
    ...(readable.length < secretFiles.length
      ? [`Nobody else can read ${secretFiles.filter((file) => !readable.includes(file)).join(', ')}.`]
      : []),
    ...(readable.length > 0
      ? [`Other users can read ${readable.join(', ')}, as CONNECTOR_ALLOW_READABLE_SECRETS permits.`]
      : []),
  ]
  return [fine('secrets', sentences.join(' '))]
}
