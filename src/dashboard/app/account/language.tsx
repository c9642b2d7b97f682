import { Select } from '../components/fields.tsx'
import { isLanguage, LANGUAGES } from '../locales/languages.ts'
import { chooseLanguage, t } from '../locales/translate.tsx'
import { readStored } from '../storage.ts'

/** The language of the screens in this browser. */
export function LanguageSetting() {
  const chosen = readStored('language')
  return (
    <section class="card">
      <Select
        name="language"
        label={t('account.language')}
        hint={t('account.languageHint')}
        value={isLanguage(chosen) ? chosen : ''}
        options={[
          { value: '', text: t('account.browserLanguage') },
          ...Object.entries(LANGUAGES).map(([value, text]) => ({ value, text })),
        ]}
        onChange={value => chooseLanguage(isLanguage(value) ? value : undefined)}
      />
    </section>
  )
}
