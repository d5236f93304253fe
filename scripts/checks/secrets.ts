import { tellReadableSecrets } from '../../worker/settings/checks.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { fine, wrong, type Finding } from './finding.ts'

/** Checks that only this user can read the files with secrets. */
export function checkSecrets(settings: Settings): Finding[] {
  const { secretFiles } = settings
  const problem = tellReadableSecrets(settings)
  if (problem !== undefined) return [wrong('secrets', problem)]
  return secretFiles.length === 0 ? [] : [fine('secrets', `Nobody else can read ${secretFiles.join(', ')}.`)]
}
