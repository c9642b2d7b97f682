import { t } from './locales/translate.tsx'

/** Returns the choices for how long an old key or secret stays valid, in hours. */
export function listGracePeriods(): { value: string; text: string }[] {
  return [
    { value: '0', text: t('words.stopNow') },
    { value: '1', text: t('words.forHour') },
    { value: '24', text: t('words.forDay') },
    { value: '168', text: t('words.forWeek') },
  ]
}
