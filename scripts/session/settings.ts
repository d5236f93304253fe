import { readSettings, type Settings } from '../../worker/settings/settings.ts'

/** The settings of this process: the environment and `.env`, checked. */
export const processSettings = (): Settings => readSettings({ env: process.env, cwd: process.cwd() })
