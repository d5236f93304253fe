import { join } from 'node:path'
import { toFileName } from '../../core/storage/file-name.ts'

interface Run {
  dataDir: string
  run: string
}

export const importFolder = ({ dataDir, run }: Run): string => join(dataDir, 'imports', toFileName(run))

export const recoveryFolder = ({ dataDir, run }: Run): string => join(dataDir, 'recoveries', toFileName(run))
