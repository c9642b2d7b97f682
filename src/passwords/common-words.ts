/** Words that passwords are made of: what is left beside them, digits and signs at the ends aside, counts. */
export const COMMON_BASES: readonly string[] = words(`
  administrator password passwort motdepasse contrasena iloveyou letmein welcome qwertyuiop qwertzuiop azertyuiop
  qwerty qwertz azerty asdfghjkl changeme changeit default baseball basketball football princess sunshine superman
  batman starwars pokemon monkey dragon master shadow trustno hello login admin access secret sommer winter summer
  spring autumn january february december monday friday whatever internet computer samsung google facebook tidings
  abcdefgh abcdef abc test guest root user demo temp love please enter system server
`)

/** Whole passwords of 12 characters and more that lists of leaked ones begin with, without signs and in lower case. */
export const COMMON_PASSWORDS: ReadonlySet<string> = new Set(
  words(`
    correcthorsebatterystaple correcthorsebattery correctbatterystaple horsebatterystaple
    thequickbrownfox quickbrownfoxjumps thequickbrownfoxjumps thequickbrownfoxjumpsoverthelazydog
    iloveyouforever iloveyousomuch iloveyoubabygirl ihateyouallsomuch mynameisjohn jesuschrist jesuslovesme
    jesusismylord godisgoodallthetime liverpoolfc1892 liverpool1234 manchesterunited manchestercity chelseafc1905
    arsenalfc1886 realmadrid1234 barcelona1899 fcbayernmuenchen dallascowboys chicagobulls newyorkyankees
    harrypotter123 gameofthrones thelordoftherings lordoftherings maytheforcebewithyou lukeskywalker
    spongebobsquarepants supercalifragilisticexpialidocious abracadabra123 opensesame123 tobeornottobe
    ncc1701enterprise blink182blink182 linkinpark123 metallica1234 michaeljackson elvispresley mercedesbenz
    harleydavidson volkswagen123 christopher1 alexander123 elizabeth1234 charlotte123 jacqueline123 sebastian123
    unitedstates unitedkingdom southafrica1 philippines1 switzerland1 deutschland1 netherlands1 argentina1234
    thisismypassword thisisapassword ihatepasswords myvoiceismypassport mypasswordisstrong idontknowthis
    idontremember dontforgetthis forgotmypassword nopasswordneeded nopassword123 passwordispassword
    supersecret123 topsecret1234 verysecurepassword securepassword verysecret123 strongpassword strongpassword1
    postgrespostgres kubernetes123 raspberrypi123 ubuntuubuntu debiandebian supervisor123 sysadminsysadmin
    happybirthday happynewyear merrychristmas valentinesday thankyouverymuch goodmorning123 cheesecake123
    chocolate1234 strawberry123 butterfly1234 watermelon123 blueberrypie cookiemonster hellokitty123 mickeymouse123
    donaldduck123 scoobydoo1234 littlemermaid sleepingbeauty beautifulgirl prettyprincess rockandroll123
    breakingbad123 onetwothreefour onetwothreefourfive zaq12wsxcde34rfv 1qazxsw23edcvfr4 q1w2e3r4t5y6 asdf1234qwer
    qwer1234asdf qweasdzxc123 123qweasdzxc 1qaz2wsx3edc a1b2c3d4e5f6 aabbccddeeff abcd1234efgh
  `),
)

function words(text: string): string[] {
  return text.trim().split(/\s+/)
}
