import { proveStore } from '../../core/storage/prove-store.ts'
import { openFiles } from '../../worker/files.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { fine, runCheck, type Finding } from './finding.ts'

const removesNothing =
  'The credentials do not permit removing: `prune` will fail there, and what imports no longer need will stay. Grant s3:DeleteObject if that is not intended.'

/** Checks that the bucket of CONNECTOR_FILES_URL can be used, and that it honours the conditions of writes. */
export async function checkFiles(settings: Pick<Settings, 'filesUrl' | 's3'>): Promise<Finding[]> {
  const files = openFiles(settings)
  if (files === undefined) return []
  return runCheck('bucket', async () => {
    const { mayRemove } = await proveStore(files)
    const usable = `${files.locate('')} is writable and honours If-None-Match and If-Match.`
    return [fine('bucket', mayRemove ? usable : `${usable} ${removesNothing}`)]
  })
}
