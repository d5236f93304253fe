import { refuseReadableSecrets } from '../../worker/settings/permissions.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { fine, type Finding } from './finding.ts'

/**
 * Checks that files with secrets are readable by this user only.
 *
 * @throws {ReadableSecretsError} as the worker does when it refuses to start
 */
export function checkSecrets(settings: Settings): Finding[] {
  refuseReadableSecrets(settings)
  const { secretFiles } = settings
  if (secretFiles.length === 0) return []
  return [fine('secrets', `Nobody else can read ${secretFiles.join(', ')}.`)]
}
